"""Delta tables that others write: watched through their log and copied part by part."""
