-- The open orders of an account, which are counted with each new one among all that are open while something goes on sale.
CREATE INDEX orders_open_of_account ON orders (account_id) WHERE status = 'Placed';
