"""Processes of a site: started, watched, restarted, and none left behind."""
