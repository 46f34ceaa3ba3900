"""Who may do what. Three kinds of people: strangers (must log in), viewers (logged in: may look), and those with one of these permissions."""

MANAGE_DESTINATION = "console.manage_destination"
DISCARD_MESSAGE = "console.discard_message"
MANAGE_ACCOUNT = "console.manage_account"
