-- Mails that are useless after a time, such as codes, are delivered before others.
CREATE INDEX outbox_expiring ON outbox (due, id) WHERE due IS NOT NULL AND expires IS NOT NULL;
