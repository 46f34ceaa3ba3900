"""Every address of the console. What is not marked otherwise asks for a login (pages.login.LoginRequired)."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path

from console.pages import (
    access, accounts, alerts, audit, configuration, connections, definitions, destination, destination_list, destinations, everywhere, named, nodes,
    operations, operators, overview, producers, replays, reports, resets, sign_on, tasks,
)  # fmt: skip
from console.pages.login import Login
from console.pages.message_addresses import ADDRESSES
from console.pages.named_kinds import KINDS
from console.probes import health, metrics

OPERATIONS, CHANGES = "|".join(destinations.OPERATIONS), "|".join(accounts.CHANGES)
OPERATOR_CHANGES, NAMED, NODE_VERBS = "|".join(operators.OPERATOR_CHANGES), "|".join(KINDS), "|".join(nodes.VERBS)

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("login", Login.as_view(), name="login"),
    path("login/sign-on", sign_on.begin, name="sign_on"),
    path("login/sign-on/back", sign_on.back, name="sign_on_back"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("destinations", destination_list.listing, name="destinations"),
    re_path(rf"^destinations/picked/(?P<verb>{'|'.join(destination_list.BULKS)})$", destination_list.bulk, name="bulk"),
    path("destinations/check", destinations.check, name="destination_check"),
    re_path(r"^destinations/(?P<number>-?[0-9]{1,10})$", destination.detail, name="destination"),
    path("destinations/create", destinations.create, name="create"),
    re_path(r"^destinations/(?P<number>-?[0-9]{1,10})/update$", destinations.update, name="update"),
    re_path(rf"^destinations/(?P<number>-?[0-9]{{1,10}})/(?P<verb>{OPERATIONS})$", destinations.operate, name="operate"),
    re_path(r"^destinations/(?P<number>[0-9]{1,10})/reset$", resets.reset, name="totals_reset"),
    path("destinations/reset", resets.reset_all, name="totals_reset_all"),
    *ADDRESSES,
    path("accounts", accounts.listing, name="accounts"),
    path("accounts/create", accounts.create, name="account_create"),
    re_path(rf"^accounts/(?P<verb>{CHANGES})$", accounts.change, name="account_change"),
    path("operators", operators.listing, name="operators"),
    path("operators/create", operators.create, name="operator_create"),
    re_path(rf"^operators/(?P<verb>{OPERATOR_CHANGES})$", operators.change, name="operator_change"),
    path("connections", connections.connections, name="connections"),
    re_path(r"^connections/(?P<number>[0-9]{1,16})$", connections.connection, name="connection"),
    re_path(r"^connections/(?P<number>[0-9]{1,16})/close$", connections.close, name="connection_close"),
    path("producers", producers.producers, name="producers"),
    path("consumers", connections.consumers, name="consumers"),
    re_path(r"^consumers/(?P<number>[0-9]{1,16})$", connections.holds, name="holds"),
    re_path(r"^consumers/(?P<number>[0-9]{1,16})/release$", connections.release, name="release"),
    re_path(r"^consumers/(?P<number>[0-9]{1,16})/close$", connections.close_consumer, name="consumer_close"),
    path("operations", operations.listing, name="operations"),
    re_path(r"^operations/(?P<number>[0-9]{1,18})$", operations.one, name="operation"),
    re_path(r"^operations/(?P<number>[0-9]{1,18})/cancel$", operations.cancel, name="operation_cancel"),
    path("tasks", tasks.listing, name="tasks"),
    re_path(r"^tasks/(?P<name>[a-z_]{1,100})$", tasks.change, name="task_change"),
    re_path(r"^tasks/(?P<name>[a-z_]{1,100})/run$", tasks.run, name="task_run"),
    *(path(plural, named.listing, {"plural": plural}, name=plural) for plural in KINDS),
    re_path(rf"^(?P<plural>{NAMED})/new$", named.create, name="named_create"),
    re_path(rf"^(?P<plural>{NAMED})/change$", named.change, name="named_change"),
    re_path(rf"^(?P<plural>{NAMED})/delete$", named.delete, name="named_delete"),
    path("nodes", nodes.listing, name="nodes"),
    path("reports", reports.listing, name="reports"),
    re_path(r"^reports/audits/(?P<number>[0-9]{1,18})$", reports.audit, name="delivery_audit"),
    path("reports/replays", replays.listing, name="replays"),
    path("reports/replays/new", replays.create, name="replay_create"),
    re_path(r"^reports/replays/(?P<number>[0-9]{1,18})$", replays.one, name="replay"),
    re_path(r"^reports/replays/(?P<number>[0-9]{1,18})/cancel$", replays.cancel, name="replay_cancel"),
    path("alerts", alerts.listing, name="alerts"),
    path("alerts/history", alerts.history, name="alert_history"),
    path("alerts/new", alerts.create, name="alert_create"),
    path("alerts/change", alerts.change, name="alert_change"),
    path("alerts/delete", alerts.delete, name="alert_delete"),
    path("alerts/test", alerts.test, name="alert_test"),
    re_path(rf"^nodes/(?P<verb>{NODE_VERBS})$", nodes.do, name="node_do"),
    path("access", access.rules, name="access"),
    path("access/create", access.create_rule, name="access_create"),
    re_path(r"^access/(?P<number>[0-9]{1,9})/delete$", access.delete_rule, name="access_delete"),
    path("grants", access.grants, name="grants"),
    path("grants/create", access.create_grant, name="grant_create"),
    re_path(r"^grants/(?P<number>[0-9]{1,9})$", access.change_grant, name="grant_change"),
    re_path(r"^grants/(?P<number>[0-9]{1,9})/delete$", access.delete_grant, name="grant_delete"),
    path("definitions", definitions.definitions, name="definitions"),
    path("definitions/export", definitions.export, name="definitions_export"),
    path("tokens", definitions.own_tokens, name="tokens"),
    re_path(r"^tokens/(?P<number>[0-9]{1,9})/revoke$", definitions.revoke_token, name="token_revoke"),
    path("password", operators.own_password, name="own_password"),
    path("audit", audit.listing, name="audit"),
    path("settings", configuration.listing, name="settings"),
    path("find", everywhere.find, name="find"),
    path("health/live", health.live, name="health_live"),
    path("health/ready", health.ready, name="health_ready"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/v1/", include("console.api.urls")),
]
handler400 = "console.api.problems.bad_request"
handler404 = "console.api.problems.not_found"
handler500 = "console.api.problems.server_error"
