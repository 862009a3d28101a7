-- The admission token with which a ticket was admitted; null if an account admitted it, and in rows of earlier versions. The
-- redeemer's name can be chosen freely, so it doesn't identify the token. The key of the same token may undo the admission, and a
-- refused ticket shows it. There is no reference, because a token may be removed while its admissions stay; its identifier is never
-- used again.
ALTER TABLE admissions ADD COLUMN token_id BIGINT;
