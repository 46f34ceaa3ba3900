"""Addresses of the pages around messages."""

from django.urls import path, re_path

from . import bulk, dead, life, messages, scheduled, sending, subscriptions, transactions, undo

OF = r"^destinations/(?P<number>-?[0-9]{1,10})/"

ADDRESSES = [
    path("messages", messages.choose, name="messages"),
    path("messages/selector", messages.check_selector, name="selector_check"),
    re_path(rf"{OF}messages$", messages.listing, name="messages_of"),
    re_path(rf"{OF}messages/send$", sending.send, name="message_send"),
    re_path(rf"{OF}messages/import$", sending.bring_in, name="message_import"),
    re_path(rf"{OF}messages/act$", bulk.act, name="message_act"),
    re_path(rf"{OF}messages/(?P<key>[0-9]{{1,2}}-[0-9]{{1,18}})$", messages.one, name="message"),
    re_path(rf"{OF}messages/(?P<key>[0-9]{{1,2}}-[0-9]{{1,18}})/life$", life.life, name="message_life"),
    path("dead", dead.everything, name="dead"),
    re_path(rf"{OF}dead$", dead.of_destination, name="dead_of"),
    path("scheduled", scheduled.choose, name="scheduled"),
    re_path(rf"{OF}scheduled$", scheduled.listing, name="scheduled_of"),
    re_path(rf"{OF}scheduled/(?P<schedule>[0-9]{{1,18}})/(?P<verb>{'|'.join(scheduled.DONE)})$", scheduled.change, name="scheduled_change"),
    path("subscriptions", subscriptions.listing, name="subscriptions"),
    re_path(r"^subscriptions/(?P<number>[0-9]{1,10})/messages$", subscriptions.messages, name="subscription_messages"),
    path("subscriptions/create", subscriptions.create, name="subscription_create"),
    re_path(rf"^subscriptions/(?P<number>[0-9]{{1,10}})/(?P<verb>{'|'.join(subscriptions.VERBS)})$", subscriptions.change, name="subscription_change"),
    path("transactions", transactions.listing, name="transactions"),
    path("transactions/history", transactions.history, name="transactions_history"),
    re_path(r"^transactions/(?P<number>[0-9]{1,18})$", transactions.one, name="transaction"),
    re_path(rf"^transactions/(?P<number>[0-9]{{1,18}})/(?P<verb>{'|'.join(transactions.DONE)})$", transactions.end, name="transaction_end"),
    path("undo", undo.listing, name="undo"),
    re_path(rf"^undo/(?P<number>[0-9]{{1,18}})/(?P<verb>{'|'.join(undo.DONE)})$", undo.change, name="undo_change"),
]
