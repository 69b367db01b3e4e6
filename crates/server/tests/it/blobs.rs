//! Bytes beside the items: whole, and ranges of them.

use reqwest::Method;

use crate::messages::talk;
use crate::test_support::{Answer, Stand};

#[tokio::test]
async fn bytes_are_given_whole_and_by_ranges() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    let chat = stand
        .engine
        .conversation("a")
        .open_existing()
        .await
        .unwrap();
    let store = stand.engine.store();
    let bytes = b"0123456789".as_slice().into();
    let blob = store.put_blob(chat.owner(), chat.id(), bytes).await;
    let path = format!("{path}/blobs/{}", blob.unwrap());
    let ask = async |headers: &[(&str, &str)]| -> Answer {
        let mut request = stand.request(Method::GET, &path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        stand.send(request).await
    };
    let whole = ask(&[]).await;
    assert_eq!((whole.status.as_u16(), &*whole.text), (200, "0123456789"));
    assert_eq!(whole.headers["content-type"], "application/octet-stream");
    assert_eq!(whole.headers["accept-ranges"], "bytes");
    let tag = whole.headers["etag"].to_str().unwrap();

    let part = ask(&[("range", "bytes=2-4"), ("if-range", tag)]).await;
    assert_eq!((part.status.as_u16(), &*part.text), (206, "234"));
    assert_eq!(part.headers["content-range"], "bytes 2-4/10");
    let last = ask(&[("range", "bytes=-3")]).await;
    assert_eq!((last.status.as_u16(), &*last.text), (206, "789"));
    let other = ask(&[("range", "bytes=2-4"), ("if-range", "\"other\"")]).await;
    assert_eq!(
        (other.status.as_u16(), other.text),
        (200, whole.text.clone())
    );

    let beyond = ask(&[("range", "bytes=10-")]).await;
    assert_eq!(beyond.headers["content-range"], "bytes */10");
    beyond.refused(416, "range_not_satisfiable");

    talk(&stand, "b", &[]).await;
    let elsewhere = path.replace("conversations/a", "conversations/b");
    stand.get(&elsewhere).await.refused(404, "not_found");
}
