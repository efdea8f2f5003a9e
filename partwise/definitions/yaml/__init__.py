"""The files as text: YAML with positions, the shape of documents, the JSON Schema for editors."""
