CREATE TABLE calque_errors (
    number INTEGER NOT NULL,
    load_id VARCHAR NOT NULL,
    file TEXT NOT NULL,
    line BIGINT NOT NULL,
    record BIGINT NOT NULL,
    byte_offset BIGINT,
    "column" TEXT,
    character BIGINT,
    target_type TEXT,
    value TEXT,
    code VARCHAR NOT NULL,
    message TEXT NOT NULL,
    raw TEXT,
    PRIMARY KEY (number)
);

CREATE INDEX ix_calque_errors_load_id ON calque_errors (load_id);

CREATE TABLE calque_ledger_version (
    version INTEGER NOT NULL
);

CREATE TABLE calque_purges (
    load_id VARCHAR NOT NULL,
    location VARCHAR NOT NULL,
    identity TEXT NOT NULL,
    tries INTEGER NOT NULL,
    message TEXT,
    PRIMARY KEY (load_id, location)
);

CREATE TABLE calque_results (
    load_id VARCHAR NOT NULL,
    location VARCHAR NOT NULL,
    name TEXT NOT NULL,
    status VARCHAR NOT NULL,
    rows_parsed BIGINT NOT NULL,
    rows_loaded BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    first_error TEXT,
    bytes BIGINT NOT NULL,
    seconds FLOAT NOT NULL,
    message TEXT,
    PRIMARY KEY (load_id, location)
);

CREATE TABLE calque_tables (
    number INTEGER NOT NULL,
    tenant VARCHAR NOT NULL,
    "database" VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    table_id VARCHAR NOT NULL,
    location TEXT,
    first_load_at BIGINT,
    checked_version BIGINT NOT NULL,
    truncated_version BIGINT NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (tenant, "database", name, table_id)
);

CREATE TABLE calque_files (
    table_number INTEGER NOT NULL,
    location VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    etag TEXT,
    last_modified BIGINT,
    version TEXT,
    token TEXT,
    content_hash TEXT,
    verified_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    load_id VARCHAR NOT NULL,
    rows BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    loaded_at BIGINT NOT NULL,
    table_version BIGINT NOT NULL,
    parts TEXT,
    PRIMARY KEY (table_number, location),
    FOREIGN KEY(table_number) REFERENCES calque_tables (number)
)
 WITHOUT ROWID;

CREATE TABLE calque_loads (
    load_id VARCHAR NOT NULL,
    table_number INTEGER NOT NULL,
    label VARCHAR,
    last BOOLEAN NOT NULL,
    state VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    lease_until BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    base_version BIGINT NOT NULL,
    table_version BIGINT,
    who TEXT,
    statement TEXT,
    engine VARCHAR,
    purge BOOLEAN NOT NULL,
    manifest BLOB,
    files BIGINT NOT NULL,
    rows BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    message TEXT,
    PRIMARY KEY (load_id),
    FOREIGN KEY(table_number) REFERENCES calque_tables (number)
);

CREATE INDEX calque_loads_by_label ON calque_loads (label);

CREATE INDEX calque_loads_by_table ON calque_loads (table_number, started_at);

CREATE INDEX calque_loads_open ON calque_loads (state, lease_until);

CREATE TABLE calque_claims (
    table_number INTEGER NOT NULL,
    location VARCHAR NOT NULL,
    load_id VARCHAR NOT NULL,
    PRIMARY KEY (table_number, location),
    FOREIGN KEY(table_number) REFERENCES calque_tables (number),
    FOREIGN KEY(load_id) REFERENCES calque_loads (load_id)
);

CREATE INDEX ix_calque_claims_load_id ON calque_claims (load_id);

INSERT INTO calque_ledger_version VALUES (1);
