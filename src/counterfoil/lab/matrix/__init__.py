"""The crash matrix: 45 fault points by six kinds of provider, each cell a life of one operation under a script."""
