"""Every read of the console. Selectors check no permission: whoever is logged in may look."""
