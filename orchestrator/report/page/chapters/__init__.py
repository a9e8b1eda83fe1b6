"""What stands below the groups, a module a chapter: evidence, answers, memory, engines, what the words mean."""
