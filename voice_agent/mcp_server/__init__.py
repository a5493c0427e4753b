"""The agent as a server of the Model Context Protocol: its tools, and a conversation with it as a tool."""
