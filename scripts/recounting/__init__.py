"""What `recount.py` counts, by what a run left; nothing of the project in between."""
