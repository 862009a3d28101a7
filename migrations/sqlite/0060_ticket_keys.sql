-- The public keys with which servers have signed the codes of tickets and the lists for gates. The private keys are in files. A key
-- stays here after a server got another one, because printed tickets and the tickets on telephones have codes of earlier keys.
CREATE TABLE ticket_keys (
    -- Derived from the public key.
    kid TEXT PRIMARY KEY,
    -- Ed25519, base64url without padding.
    public_key TEXT NOT NULL,
    created BIGINT NOT NULL
);
