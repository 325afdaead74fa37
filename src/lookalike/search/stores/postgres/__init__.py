"""An index on PostgreSQL with pgvector. `address` needs nothing but the standard library, `store` needs psycopg."""
