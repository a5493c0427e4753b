"""What authors of a project work with: conversation tests, new projects, prompts on show, JSON schemas."""
