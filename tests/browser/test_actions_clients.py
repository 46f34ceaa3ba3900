"""What is done to clients on their pages."""

from __future__ import annotations

import pytest

from broker_core.client import Queue
from tests.acceptance.python_client import CLIENT, SOON, factory, fill, texts
from tests.browser.doing import agree, everything, told
from tests.support.clients import Connection, ErrorReceived
from tests.support.service import await_true

pytestmark = pytest.mark.slow


@pytest.mark.clicks("release")
def test_what_a_consumer_holds_is_given_back(page_as, service, api):
    with factory(service).create_connection() as connection:
        fill(connection, Queue("act.held"), "a", "b")
        with connection.create_session(acknowledge_mode=CLIENT) as session:
            consumer = session.create_consumer(Queue("act.held"))
            assert texts(consumer, 2) == ["a", "b"]

            def holder() -> dict:
                return next((each for each in everything(api, "consumers?limit=1000") if each["destination"] == "queue/act.held" and each["unsettled"]), {})

            await_true(lambda: bool(holder()), SOON, "nobody holds them", 0.2)
            number = holder()["consumer"]
            page = page_as().open(f"/consumers/{number}")
            page.click("tbody tr >> nth=0 >> text=Give back")
            agree(page)
            told(page, "gives back")
            page.click('.page-head a:text-is("Give all back")')
            agree(page)
            told(page, "gives back")
            again = [consumer.receive(SOON) for _ in range(3)]
            assert [(message.body, message.jms_redelivered) for message in again if message] == [("a", True), ("a", True), ("b", True)]


@pytest.mark.clicks("consumer_close")
def test_a_consumer_is_closed_and_its_client_told_why(page_as, service, api):
    from tests.acceptance import proton_client  # which may not be installed

    with proton_client.connected(service) as client:
        receiver = client.create_receiver("act.detached")
        number = next(each["consumer"] for each in everything(api, "consumers?limit=1000") if each["destination"] == "queue/act.detached")
        page = page_as().open("/consumers")
        page.click(f'main a[href="/consumers/{number}/close"]')
        agree(page, reason="it hangs")
        told(page, "closed")
        with pytest.raises(proton_client.proton.utils.LinkDetached, match="it hangs"):
            receiver.receive(timeout=SOON)
        assert number not in {each["consumer"] for each in everything(api, "consumers?limit=1000")}


@pytest.mark.clicks("connection_close")
def test_a_connection_is_closed_and_its_client_told_why(page_as, service, api):
    with Connection(service.stomp_port) as client:
        client.subscribe("/queue/act.closed")
        before = {each["connection"] for each in everything(api, "connections?limit=1000")}
        number = next(each["connection"] for each in everything(api, "consumers?limit=1000") if each["destination"] == "queue/act.closed")
        assert number in before
        page = page_as().open(f"/connections/{number}")
        page.click('.page-head a:text-is("Close it")')
        agree(page, reason="the cable is being moved")
        told(page, "closed")
        with pytest.raises(ErrorReceived, match="the cable is being moved"):
            client.receive(SOON)
    assert number not in {each["connection"] for each in everything(api, "connections?limit=1000")}
