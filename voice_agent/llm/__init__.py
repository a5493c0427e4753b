"""Language models behind one Protocol: messages and tools in, text and tool-call deltas out."""
