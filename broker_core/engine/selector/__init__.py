"""Message selectors: the condition by which a consumer chooses messages (JMS 3.8.1), with SQL-92's three-valued logic.

    selector = compile_selector("region = 'north' AND weight BETWEEN 1 AND 5")
    selector.matches({"region": "north", "weight": 3}.get)

Theory of operation: lexer.py and parser.py read the text into a tree (syntax.py); canonical.py simplifies it, writes it in one form and reads off
what an index needs; compiler.py makes closures of it. A text is hostile: its length, its depth and its number of nodes are bounded (parser.py),
and every match takes time proportional to the values it reads. The names of header fields (JMSPriority, JMSType, ...) are nothing special here:
who asks gives their values, JMSDeliveryMode as 'PERSISTENT' or 'NON_PERSISTENT'.

What the standard leaves open is decided so: comparing unlike types is false by every sign, <> too; NOT turns it into true. NOT BETWEEN is no
negation, NOT IN and NOT LIKE are. Arithmetic over what is no number is NULL, as is a long divided by zero; longs wrap around.
"""

from .error import SelectorError
from .selector import Selector, compile_selector, constants_of

__all__ = ["Selector", "SelectorError", "compile_selector", "constants_of"]
