"""Who may do what: strangers must log in, viewers are logged in and may look, and some people have one of these permissions."""

MANAGE_DESTINATION = "console.manage_destination"
DISCARD_MESSAGE = "console.discard_message"
MANAGE_ACCOUNT = "console.manage_account"
