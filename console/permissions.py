"""Who may do what: strangers must log in, viewers are logged in and may look, and some people have one of these permissions."""

MANAGE_DESTINATION = "console.manage_destination"
DISCARD_MESSAGE = "console.discard_message"
MANAGE_ACCOUNT = "console.manage_account"
MANAGE_OPERATOR = "console.manage_operator"
"""Nobody can be granted it, so that only superusers have it: whoever may make operators may make himself anything."""
GRANTABLE = {
    "manage_destination": "Manage destinations: create, change, pause, resume",
    "discard_message": "Discard messages: purge and destroy destinations",
    "manage_account": "Manage client accounts",
}
"""The permissions that an operator may have, and what they are called where somebody grants them."""
