"""The PostgreSQL that tests use."""

from sqlalchemy import create_engine, text

from tests.servers.postgres import running_postgres


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
