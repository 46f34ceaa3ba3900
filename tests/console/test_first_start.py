"""What a new installation begins with, and what later starts leave alone."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from broker_core.scram import Verifier, check_password
from console.services.first_start import first_start
from tests.console import facts
from tests.console.conftest import OPERATOR, PASSWORD


@pytest.fixture
def empty(database):
    """As if nothing had ever started here; put back afterwards."""
    with transaction.atomic():
        User.objects.all().delete()
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM surety.account; SET session_replication_role = replica; DELETE FROM surety.audit; RESET session_replication_role")
        yield
        transaction.set_rollback(True)


def _accounts():
    from console.selectors.accounts import page

    return [(account.name, account.loopback_only, account.disabled) for account in page()[0]]


def test_guest_may_connect_from_loopback_with_the_password_guest(database):
    [(loopback_only, *verifier)] = facts.rows(
        database, "SELECT loopback_only, salt, iterations, stored_key, server_key FROM surety.account WHERE name = 'guest'"
    )
    assert loopback_only
    assert check_password("guest", Verifier(*verifier))


@override_settings(ADMIN_USER="admin", ADMIN_PASSWORD="")
def test_a_generated_password_is_printed_once_and_holds(empty):
    first, second = StringIO(), StringIO()
    call_command("bootstrap", stdout=first)
    call_command("bootstrap", stdout=second)
    password = first.getvalue().split("password ")[1].split()[0]
    assert len(password) >= 20
    assert User.objects.get(username="admin").check_password(password)
    assert second.getvalue() == ""
    assert _accounts() == [("guest", True, False)]


@override_settings(ADMIN_USER="root", ADMIN_PASSWORD="given by hand")
def test_a_given_password_is_not_printed(empty):
    told = StringIO()
    call_command("bootstrap", stdout=told)
    assert "root" in told.getvalue()
    assert "given by hand" not in told.getvalue()
    assert User.objects.get(username="root").check_password("given by hand")


def test_a_deleted_guest_stays_deleted(empty):
    first_start("admin", "given by hand")
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM surety.account WHERE name = 'guest'")
    first_start("admin", "given by hand")
    first_start("another", "given by hand")
    assert _accounts() == []


def test_a_given_password_replaces_a_lost_one(empty):
    first_start("admin", "")
    first_start("admin", "given by hand")
    assert User.objects.get(username="admin").check_password("given by hand")


def test_without_a_given_password_nothing_is_changed(empty):
    first_start("admin", "given by hand")
    assert first_start("admin", "").generated_password == ""
    assert first_start("another", "").created is False
    assert User.objects.get(username="admin").check_password("given by hand")
    assert User.objects.count() == 1


def test_migrate_can_run_again(database):
    told = StringIO()
    call_command("migrate", interactive=False, verbosity=0, stdout=told)
    assert told.getvalue() == ""
    assert User.objects.get(username=OPERATOR).check_password(PASSWORD)


def test_a_plan_of_migrations_makes_no_operator(empty):
    call_command("migrate", plan=True, verbosity=0, stdout=StringIO())
    assert User.objects.count() == 0


def test_a_fresh_database_gets_the_tables_of_both_and_an_operator(server, migrated, monkeypatch):
    """Everything that `make run` relies on, from nothing."""
    from dataclasses import replace

    from django.conf import settings
    from django.db import connection

    fresh = server.create_database()
    reached = connection.settings_dict["NAME"]
    monkeypatch.setattr(settings, "BROKER", replace(settings.BROKER, database_url=f"postgresql://postgres@/{fresh}?host={server.sockets}"))
    connection.close()
    connection.settings_dict["NAME"] = fresh
    try:
        told = StringIO()
        with override_settings(ADMIN_USER="admin", ADMIN_PASSWORD=""):
            call_command("migrate", interactive=False, verbosity=0, stdout=told)
        assert told.getvalue().startswith("Operator admin, password ")
        assert facts.rows(server.dsn(fresh), "SELECT name FROM surety.account") == [("guest",)]
        assert facts.rows(server.dsn(fresh), "SELECT username FROM auth_user") == [("admin",)]
    finally:
        connection.close()
        connection.settings_dict["NAME"] = reached
        server.drop_database(fresh)
