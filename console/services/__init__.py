"""Every write of the console: check the permission, file a control request and an audit row in one transaction, wait for the answer."""
