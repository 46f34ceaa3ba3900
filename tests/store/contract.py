"""What the port promises, asked of every store. A test module derives from StoreContract and gives it a `rig`: a database, and ways to trouble it."""

from __future__ import annotations

from tests.store.contract_failures import FailureContract
from tests.store.contract_inbox import InboxContract
from tests.store.contract_messages import BodyContract, MessageContract
from tests.store.contract_operations import OperationContract
from tests.store.contract_prepared import PreparedContract
from tests.store.contract_recovery import RecoveryContract
from tests.store.contract_schedule import DuplicateContract, ScheduleContract
from tests.store.contract_undo import UndoContract


class StoreContract(
    FailureContract, MessageContract, BodyContract, ScheduleContract, InboxContract, DuplicateContract, PreparedContract, RecoveryContract,
    OperationContract, UndoContract,
):  # fmt: skip
    """All of it."""
