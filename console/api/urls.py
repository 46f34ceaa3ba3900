"""The addresses under /api/v1/. Names that may hold any character end an address; what is done to a destination goes by its number."""

from django.urls import path, re_path

from console.services.branches import VERBS

from . import connections, definitions, delayed, destinations, messages, names, operations, people, schedule, state

NUMBER = "[0-9]{1,18}"
KEY = "1?[0-9]-[0-9]{1,18}"
DESTINATION = r"^destinations/(?P<number>-?[0-9]{1,10})"

urlpatterns = [
    path("whoami", state.WhoAmI.as_view()),
    path("node", state.Node.as_view()),
    path("health", state.Health.as_view()),
    path("totals", state.Totals.as_view()),
    path("audit", state.Audit.as_view()),
    path("problems", state.Problems.as_view()),
    path("schema/", state.Schema.as_view()),
    re_path(rf"^requests/(?P<number>{NUMBER})$", state.OneRequest.as_view()),
    path("destinations", destinations.Destinations.as_view()),
    re_path(rf"{DESTINATION}$", destinations.OneDestination.as_view()),
    re_path(rf"{DESTINATION}/pause$", destinations.Pause.as_view()),
    re_path(rf"{DESTINATION}/resume$", destinations.Resume.as_view()),
    re_path(rf"{DESTINATION}/purge$", destinations.Purge.as_view()),
    re_path(rf"{DESTINATION}/messages$", messages.Messages.as_view()),
    re_path(rf"{DESTINATION}/messages/export$", messages.Export.as_view()),
    re_path(rf"{DESTINATION}/messages/import$", messages.Import.as_view()),
    re_path(rf"{DESTINATION}/messages/dead$", messages.DeadGroups.as_view()),
    re_path(rf"{DESTINATION}/messages/(?P<key>{KEY})$", messages.OneMessage.as_view()),
    re_path(rf"{DESTINATION}/messages/(?P<key>{KEY})/body$", messages.MessageOctets.as_view()),
    path("connections", connections.Connections.as_view()),
    re_path(rf"^connections/(?P<number>{NUMBER})$", connections.OneConnection.as_view()),
    path("consumers", connections.Consumers.as_view()),
    re_path(rf"^consumers/(?P<number>{NUMBER})/deliveries$", connections.Deliveries.as_view()),
    re_path(rf"^consumers/(?P<number>{NUMBER})/release$", connections.Release.as_view()),
    re_path(rf"{DESTINATION}/operations$", operations.Begin.as_view()),
    path("operations", operations.Operations.as_view()),
    re_path(rf"^operations/(?P<number>{NUMBER})$", operations.OneOperation.as_view()),
    re_path(rf"^operations/(?P<number>{NUMBER})/cancel$", operations.Cancel.as_view()),
    re_path(rf"{DESTINATION}/scheduled$", delayed.Delayed.as_view()),
    re_path(rf"{DESTINATION}/scheduled/(?P<delayed>{NUMBER})/cancel$", delayed.CancelDelayed.as_view()),
    re_path(rf"{DESTINATION}/scheduled/(?P<delayed>{NUMBER})/deliver$", delayed.DeliverDelayed.as_view()),
    re_path(rf"{DESTINATION}/scheduled/(?P<delayed>{NUMBER})/reschedule$", delayed.Reschedule.as_view()),
    path("policies", names.Policies.as_view()),
    path("policies/<path:name>", names.OnePolicy.as_view()),
    path("aliases", names.Aliases.as_view()),
    path("aliases/<path:name>", names.OneAlias.as_view()),
    path("objects", names.Objects.as_view()),
    path("objects/<path:name>", names.OneObject.as_view()),
    path("links", names.Links.as_view()),
    path("links/<path:name>", names.OneLink.as_view()),
    path("subscriptions", state.Subscriptions.as_view()),
    path("branches", state.Branches.as_view()),
    re_path(rf"^branches/(?P<number>{NUMBER})$", state.OneBranch.as_view()),
    re_path(rf"^branches/(?P<number>{NUMBER})/(?P<verb>{'|'.join(VERBS)})$", state.EndBranch.as_view()),
    path("schedule", schedule.Schedule.as_view()),
    re_path(r"^schedule/(?P<name>[a-z_]{1,50})$", schedule.OneTask.as_view()),
    re_path(r"^schedule/(?P<name>[a-z_]{1,50})/run$", schedule.RunTask.as_view()),
    path("definitions", definitions.Definitions.as_view()),
    path("accounts", people.Accounts.as_view()),
    path("accounts/<path:name>", people.OneAccount.as_view()),
    path("access", people.AccessRules.as_view()),
    re_path(rf"^access/(?P<number>{NUMBER})$", people.OneAccessRule.as_view()),
    path("operators", people.Operators.as_view()),
    path("operators/<path:name>", people.OneOperator.as_view()),
    path("grants", people.Grants.as_view()),
    re_path(rf"^grants/(?P<number>{NUMBER})$", people.OneGrant.as_view()),
    path("tokens", people.Tokens.as_view()),
    re_path(rf"^tokens/(?P<number>{NUMBER})$", people.OneToken.as_view()),
    re_path(r"^[\s\S]*$", state.Nothing.as_view()),
]
