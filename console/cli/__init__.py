"""`manage.py mq`: what operators do, from a terminal. A table of commands onto the REST API; what each takes is what the API's document says."""
