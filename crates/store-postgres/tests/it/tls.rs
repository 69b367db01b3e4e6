//! Encrypted connections to a real server, with certificates made here.

use std::path::PathBuf;

use contexture_store::{Error, StorageFault};
use contexture_store_postgres::PostgresStore;
use contexture_store_testkit::Chat;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use tokio_postgres::Client;

use crate::own_server::OwnServer;
use crate::server::Database;

/// Who certifies servers.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate of `localhost`, valid until that year, and its key.
    fn certify(&self, year: i32) -> (String, String) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// A certificate that nobody but itself certifies.
fn self_signed() -> (String, String) {
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Starts the server again, to show this certificate.
async fn show(server: &mut OwnServer, (certificate, key): &(String, String)) -> Client {
    for (name, text) in [("server.crt", certificate), ("server.key", key)] {
        let file = server.place("data").join(name);
        std::fs::write(&file, text).unwrap();
        server.give(&file);
    }
    server.stop();
    server.set("ssl=on");
    server.launch();
    server.client().await
}

/// How a store is connected that has just been opened: whether encrypted, `Err`: why not at all.
async fn connected(client: &Client, address: &str) -> Result<bool, String> {
    let store = match PostgresStore::open(address).await {
        Ok(store) => store,
        Err(error) => {
            let is_told = matches!(
                error,
                Error::Storage {
                    fault: StorageFault::CannotOpen,
                    ..
                }
            );
            assert!(is_told, "{error:?}");
            let mut said = format!("{error} {error:?}");
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                said.push_str(&format!(" {cause}"));
                source = cause.source();
            }
            assert!(!said.contains("own-server-password"), "{said}");
            return Err(said);
        }
    };
    let sql = "SELECT bool_and(s.ssl), count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a \
         ON a.pid = s.pid WHERE a.application_name = 'contexture'";
    // Sessions of stores that are closed may still be ending.
    loop {
        let row = client.query_one(sql, &[]).await.unwrap();
        if row.get::<_, i64>(1) == 1 {
            let chat = Chat::start(std::sync::Arc::new(store)).await;
            chat.append_messages("main", &["a"]).await;
            let deleted = chat.store.delete_conversation(&chat.owner, &chat.id);
            deleted.await.unwrap();
            return Ok(row.get(0));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_as_safe_as_was_asked() {
    let mut server = match OwnServer::start().await {
        Ok(server) => server,
        Err(why) => return println!("{why}"),
    };
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let file = |name: &str, text: String| -> PathBuf {
        let file = server.place(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let own = self_signed();
    let [ours_file, theirs_file, own_file] = [
        file("ours.pem", ours.certificate.pem()),
        file("theirs.pem", theirs.certificate.pem()),
        file("own.pem", own.0.clone()),
    ];
    let [ours_file, theirs_file, own_file] =
        [&ours_file, &theirs_file, &own_file].map(|file| file.display().to_string());
    let (name, number) = ("localhost", "127.0.0.1");
    let with = |mode: &str, roots: &str| format!("sslmode={mode}&sslrootcert={roots}");
    let (yes, no) = (Ok(true), Ok(false));
    let unknown = Err("UnknownIssuer");

    let client = show(&mut server, &ours.certify(2100)).await;
    let certified = [
        (name, "sslmode=disable".to_owned(), no),
        (name, "sslmode=prefer".to_owned(), yes),
        (name, "sslmode=require".to_owned(), yes),
        (number, "sslmode=require".to_owned(), yes),
        (name, with("require", &ours_file), yes),
        (name, with("verify-ca", &ours_file), yes),
        (name, with("verify-full", &ours_file), yes),
        // The wrong name.
        (number, with("verify-ca", &ours_file), yes),
        (
            number,
            with("verify-full", &ours_file),
            Err("NotValidForName"),
        ),
        // The wrong issuer.
        (name, with("require", &theirs_file), unknown),
        (name, with("verify-ca", &theirs_file), unknown),
        (name, with("verify-full", &theirs_file), unknown),
        // Nobody this machine trusts has certified it.
        (name, "sslmode=verify-full".to_owned(), unknown),
    ];
    check(&server, &client, "certified", &certified).await;

    let client = show(&mut server, &ours.certify(2001)).await;
    let expired = [
        (name, "sslmode=require".to_owned(), yes),
        (name, with("verify-ca", &ours_file), Err("Expired")),
        (name, with("verify-full", &ours_file), Err("Expired")),
    ];
    check(&server, &client, "expired", &expired).await;

    let client = show(&mut server, &own).await;
    let alone = [
        (name, "sslmode=require".to_owned(), yes),
        (name, with("verify-full", &own_file), yes),
        (
            number,
            with("verify-full", &own_file),
            Err("NotValidForName"),
        ),
        (name, with("verify-full", &ours_file), unknown),
    ];
    check(&server, &client, "self-signed", &alone).await;
}

type Case<'a> = (&'a str, String, Result<bool, &'a str>);

async fn check(server: &OwnServer, client: &Client, what: &str, cases: &[Case<'_>]) {
    for (host, options, wanted) in cases {
        let got = connected(client, &server.address_at(host, options)).await;
        match (&got, wanted) {
            (Ok(got), Ok(wanted)) if got == wanted => {}
            (Err(said), Err(wanted)) if said.contains(wanted) => {}
            _ => panic!("{what}, {host}, {options}: {got:?}, expected {wanted:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_cannot_encrypt_is_refused_where_that_was_asked() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let ssl = client.query_one("SHOW ssl", &[]).await.unwrap();
    if ssl.get::<_, &str>(0) == "on" {
        println!("NOT TESTED: the server encrypts");
        drop(client);
        return database.drop().await;
    }
    let with = |mode: &str| {
        database
            .address
            .replace("sslmode=disable", &format!("sslmode={mode}"))
    };
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = PostgresStore::open(&with(mode)).await.unwrap_err();
        let is_told = matches!(
            error,
            Error::Storage {
                fault: StorageFault::CannotOpen,
                ..
            }
        );
        assert!(is_told, "{mode}: {error:?}");
    }
    PostgresStore::open(&with("prefer")).await.unwrap();
    drop(client);
    database.drop().await;
}

/// A file of issuers that is no such file is an error of the address, before anything is sent.
#[tokio::test]
async fn issuers_that_cannot_be_read_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, empty) = (
        directory.path().join("missing"),
        directory.path().join("empty"),
    );
    std::fs::write(&empty, "no certificate").unwrap();
    for file in [missing, empty] {
        let file = file.display();
        let address =
            format!("postgres://postgres@127.0.0.1:1/d?sslmode=verify-full&sslrootcert={file}");
        let error = PostgresStore::open(&address).await.unwrap_err();
        assert_eq!(error.kind(), "invalid");
        assert!(error.to_string().contains(&file.to_string()), "{error}");
    }
}
