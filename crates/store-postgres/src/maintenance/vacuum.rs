//! The server's files: checked by its extension `amcheck`, compacted by `VACUUM`.
//!
//! Both work on whole tables, so no statement here names a conversation, and each is a transaction
//! of its own.
//!
//! Not here: copying, for which the server has its own programs.

use contexture_store::{Compacted, Error, StorageFault};
use deadpool_postgres::Client;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::connection::error::{RowError, from_postgres};
use crate::connection::params::{Param, get_column, params};
use crate::connection::pool::{Access, ConnectionPool};
use crate::connection::transaction::bind_params;

/// Largest number of lines that a check reports.
const LINES: usize = 100;

/// Quoted name of the extension's schema, if it is installed and its functions may be used.
const AMCHECK: &str = "SELECT quote_ident(s.nspname) FROM pg_extension e \
     JOIN pg_namespace s ON s.oid = e.extnamespace WHERE e.extname = 'amcheck' \
     AND has_schema_privilege(s.oid, 'USAGE') \
     AND EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = s.oid \
     AND p.proname = 'verify_heapam' AND has_function_privilege(p.oid, 'EXECUTE')) \
     AND EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = s.oid AND p.pronargs = 2 \
     AND p.proname = 'bt_index_check' AND has_function_privilege(p.oid, 'EXECUTE'))";

/// The tables of this program and their B-tree indexes, with their sizes.
const RELATIONS: &str = "SELECT c.relname::text, c.relkind = 'i', pg_table_size(c.oid) \
     FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace \
     LEFT JOIN pg_am a ON a.oid = c.relam WHERE s.nspname = 'contexture' \
     AND (c.relkind = 'r' OR (c.relkind = 'i' AND a.amname = 'btree')) ORDER BY c.relname";

const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint \
     FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace \
     WHERE s.nspname = 'contexture' AND c.relkind = 'r'";

/// Checks the files of the tables; returns a line for each fault.
pub(crate) async fn verify_medium(server: &ConnectionPool) -> Result<Vec<String>, Error> {
    let client = server.get_client(Access::Maintenance, None).await?;
    let session = ServerSession {
        client: &client,
        server,
    };
    let schemas: Vec<String> = session.query_column(AMCHECK, Vec::new()).await?;
    let Some(schema) = schemas.first() else {
        return Err(Error::NotOffered {
            what: "a check of the medium without PostgreSQL's extension amcheck",
            instead: "CREATE EXTENSION amcheck in this database and GRANT EXECUTE on its \
                      functions, or run pg_amcheck",
        });
    };
    let mut lines = Vec::new();
    for relation in session.list_relations().await? {
        lines.extend(session.verify_relation(schema, &relation).await?);
        if lines.len() >= LINES {
            lines.truncate(LINES);
            break;
        }
    }
    Ok(lines)
}

/// Runs `VACUUM` on the tables, one by one.
pub(crate) async fn compact_storage(server: &ConnectionPool) -> Result<Compacted, Error> {
    let client = server.get_client(Access::Maintenance, None).await?;
    let session = ServerSession {
        client: &client,
        server,
    };
    let before = session.measure_size().await?;
    for relation in session.list_relations().await? {
        if !relation.is_index {
            // Our own table names need no quotes.
            let sql = format!("VACUUM contexture.{}", relation.name);
            let done = client.batch_execute(&sql).await;
            done.map_err(|error| from_postgres(error, server.address()))?;
        }
    }
    let after = session.measure_size().await?;
    Ok(Compacted { before, after })
}

struct Relation {
    name: String,
    is_index: bool,
}

struct ServerSession<'a> {
    client: &'a Client,
    server: &'a ConnectionPool,
}

impl ServerSession<'_> {
    async fn query_rows(&self, sql: &str, params: Vec<Param>) -> Result<Vec<Row>, Error> {
        let rows = self.client.query_typed(sql, &bind_params(&params)).await;
        rows.map_err(|error| from_postgres(error, self.server.address()))
    }

    /// Reads the first column of a query.
    async fn query_column<T>(&self, sql: &str, params: Vec<Param>) -> Result<Vec<T>, Error>
    where
        T: for<'r> FromSql<'r>,
    {
        let rows = self.query_rows(sql, params).await?;
        let column = rows.iter().map(|row| get_column(row, 0));
        column
            .collect::<Result<Vec<T>, RowError>>()
            .map_err(|fault| self.to_error(fault))
    }

    /// Checks one table or index with amcheck, whose functions are in `schema`.
    async fn verify_relation(
        &self,
        schema: &str,
        relation: &Relation,
    ) -> Result<Vec<String>, Error> {
        let name = format!("contexture.{}", relation.name);
        let sql = match relation.is_index {
            true => format!("SELECT {schema}.bt_index_check($1::regclass, true)::text"),
            false => format!(
                "SELECT format('block %s, item %s: %s', blkno, offnum, msg) \
                 FROM {schema}.verify_heapam($1::regclass, check_toast => true)"
            ),
        };
        let found = self.query_column::<Option<String>>(&sql, params![name.as_str()]);
        match found.await {
            Ok(found) => {
                let found = found.into_iter().flatten().filter(|line| !line.is_empty());
                Ok(found.map(|line| format!("{name}: {line}")).collect())
            }
            // The damage made amcheck itself fail.
            Err(Error::Storage {
                fault: StorageFault::Corrupt,
                source,
                ..
            }) => {
                let why = source.map_or_else(String::new, |source| error_cause_text(&*source));
                Ok(vec![format!("{name}: {why}")])
            }
            Err(error) => Err(error),
        }
    }

    async fn list_relations(&self) -> Result<Vec<Relation>, Error> {
        let rows = self.query_rows(RELATIONS, Vec::new()).await?;
        let relations = rows.iter().map(|row| {
            Ok(Relation {
                name: get_column(row, 0)?,
                is_index: get_column(row, 1)?,
            })
        });
        let relations = relations.collect::<Result<Vec<Relation>, RowError>>();
        relations.map_err(|fault| self.to_error(fault))
    }

    async fn measure_size(&self) -> Result<u64, Error> {
        let sizes: Vec<i64> = self.query_column(SIZE, Vec::new()).await?;
        let size = sizes.first().copied().unwrap_or(0);
        Ok(u64::try_from(size).unwrap_or(0))
    }

    fn to_error(&self, fault: RowError) -> Error {
        fault.into_error(self.server.address())
    }
}

/// Returns the text of an error's cause, or of the error itself.
fn error_cause_text(error: &dyn std::error::Error) -> String {
    let cause = error.source();
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}
