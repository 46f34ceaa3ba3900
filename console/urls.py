"""Every address of the console. What is not marked otherwise asks for a login (pages.login.LoginRequired)."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path

from console.pages import accounts, audit, destination_list, destinations, operators, overview, sign_on
from console.pages.login import Login
from console.probes import health, metrics

OPERATIONS, CHANGES = "|".join(destinations.OPERATIONS), "|".join(accounts.CHANGES)
OPERATOR_CHANGES = "|".join(operators.OPERATOR_CHANGES)

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("login", Login.as_view(), name="login"),
    path("login/sign-on", sign_on.begin, name="sign_on"),
    path("login/sign-on/back", sign_on.back, name="sign_on_back"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("destinations", destination_list.listing, name="destinations"),
    path("destinations/create", destinations.create, name="create"),
    re_path(r"^destinations/(?P<number>-?[0-9]{1,10})/update$", destinations.update, name="update"),
    re_path(rf"^destinations/(?P<number>-?[0-9]{{1,10}})/(?P<verb>{OPERATIONS})$", destinations.operate, name="operate"),
    path("accounts", accounts.listing, name="accounts"),
    path("accounts/create", accounts.create, name="account_create"),
    re_path(rf"^accounts/(?P<verb>{CHANGES})$", accounts.change, name="account_change"),
    path("operators", operators.listing, name="operators"),
    path("operators/create", operators.create, name="operator_create"),
    re_path(rf"^operators/(?P<verb>{OPERATOR_CHANGES})$", operators.change, name="operator_change"),
    path("password", operators.own_password, name="own_password"),
    path("audit", audit.listing, name="audit"),
    path("health/live", health.live, name="health_live"),
    path("health/ready", health.ready, name="health_ready"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/v1/", include("console.api.urls")),
]
