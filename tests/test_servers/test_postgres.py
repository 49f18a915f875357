"""The PostgreSQL that tests use."""

import psycopg
from sqlalchemy import create_engine, text

from tests.servers.postgres import PostgresServer, running_postgres


def test_databases_are_separate_and_durable() -> None:
    """Two databases of one server do not see each other, and fsync is on."""
    with running_postgres() as server:
        first, second = server.database(), server.database()
        engine = create_engine(first)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE t (n int)"))
            assert connection.execute(text("SHOW fsync")).scalar() == "on"
        engine.dispose()
        other = create_engine(second)
        with other.connect() as connection:
            assert connection.execute(text("SELECT to_regclass('t')")).scalar() is None
        other.dispose()
        server.drop(first)


def test_stop_twice() -> None:
    """Stopping a stopped server is nothing."""
    with running_postgres() as server:
        server.stop()


def prepare(url: str) -> None:
    run(
        url,
        "CREATE TABLE note (n int); INSERT INTO note VALUES (7);"
        "CREATE TABLE parent (n bigserial PRIMARY KEY);"
        "CREATE TABLE child (n bigint REFERENCES parent)",
    )


def run(url: str, statement: str) -> None:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(statement)


def ask(url: str, statement: str) -> list[object]:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return [row[0] for row in connection.execute(statement)]


def test_a_prepared_database_is_emptied_before_it_is_used_again(postgres: PostgresServer) -> None:
    """Rows of others are gone, small tables and large; what was prepared stays, and numbers begin
    at one."""
    url = postgres.prepared(prepare)
    assert postgres.prepared(prepare) != url  # that one is in use
    for count in (3, 40_000):
        run(url, f"INSERT INTO parent SELECT FROM generate_series(1, {count})")
        run(url, "INSERT INTO child SELECT n FROM parent")
        postgres.drop(url)
        assert postgres.prepared(prepare) == url
        assert ask(url, "SELECT n FROM parent UNION ALL SELECT n FROM child") == []
        assert ask(url, "SELECT n FROM note") == [7]
        assert ask(url, "INSERT INTO parent DEFAULT VALUES RETURNING n") == [1]


def test_a_database_whose_tables_were_changed_is_not_used_again(postgres: PostgresServer) -> None:
    """A column, a table or an index more or less: the next gets a new one."""
    for change in (
        "ALTER TABLE child ADD COLUMN more int",
        "CREATE TABLE other (n int)",
        "CREATE INDEX other_index ON child (n)",
        "DROP TABLE child",
    ):
        url = postgres.prepared(prepare)
        run(url, change)
        postgres.drop(url)
        fresh = postgres.prepared(prepare)
        assert fresh != url
        assert ask(fresh, "SELECT n FROM child") == []
        postgres.drop(fresh)
