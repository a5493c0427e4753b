"""One live call: the pure floor machine and ledger, and the async shells around them."""
