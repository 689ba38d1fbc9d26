"""Did it work? Analyses of a flag: who had which side of it, what came of them, and what statistics say about it."""
