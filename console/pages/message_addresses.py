"""Addresses of the pages around messages."""

from django.urls import path, re_path

from . import bulk, messages, sending

OF = r"^destinations/(?P<number>-?[0-9]{1,10})/"

ADDRESSES = [
    path("messages", messages.choose, name="messages"),
    path("messages/selector", messages.check_selector, name="selector_check"),
    re_path(rf"{OF}messages$", messages.listing, name="messages_of"),
    re_path(rf"{OF}messages/send$", sending.send, name="message_send"),
    re_path(rf"{OF}messages/import$", sending.bring_in, name="message_import"),
    re_path(rf"{OF}messages/act$", bulk.act, name="message_act"),
    re_path(rf"{OF}messages/(?P<key>[0-9]{{1,2}}-[0-9]{{1,18}})$", messages.one, name="message"),
]
