-- When a key was used last, so that its owner sees which ones nobody needs any more, and which somebody else seems to have.
-- Null until the first use. It is noted once an hour at the most: a request that only reads is not to write.
ALTER TABLE api_keys ADD COLUMN last_used BIGINT;
