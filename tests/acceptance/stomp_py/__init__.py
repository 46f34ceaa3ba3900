"""What an application does with stomp.py, as a program: `python -m tests.acceptance.stomp_py PORT NAME SCENARIO`. Exits 0 if all went well.

Runs under any stomp.py from 8 (Debian's) to 9, with any interpreter; imports nothing of ours. NAME is of a queue or of a topic, as the
scenario wants.
"""
