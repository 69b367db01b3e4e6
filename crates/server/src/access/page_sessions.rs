//! Sessions of the inspector: who signed in with a key, so that a browser has a cookie and not the key.
//!
//! A session lives in memory: it ends with the server, twelve hours after it was last used, seven days after it began, or when its
//! bearer signs out. What it may do is what its key may do. Several servers behind one address need the same one for a browser, or ask again for the key.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::access::Principal;
use crate::access::new_key::random_text;
use crate::config::KeyHash;

/// How long a session lasts without being used.
pub(crate) const SESSION_LENGTH: Duration = Duration::from_secs(12 * 60 * 60);

/// How long a session lasts that is used all the time, as one is whose page stays open: the key is asked for now and then.
const LONGEST_SESSION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Sessions at a time; a further one ends the one that was used the longest ago.
const MAX_SESSIONS: usize = 1_000;

/// The sessions that are open.
pub(crate) struct PageSessions {
    /// By the hash of the cookie: how long a look-up takes must not tell a cookie's beginning.
    open: Mutex<BTreeMap<KeyHash, Session>>,
    /// What forms carry where nobody signs in; `None` if the system has no randomness, and then forms are refused.
    local_token: Option<String>,
}

struct Session {
    principal: Principal,
    form_token: String,
    transport: CookieTransport,
    opened: Instant,
    last_used: Instant,
}

/// Which connections a browser sends a cookie over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieTransport {
    /// Encrypted ones alone.
    HttpsOnly,
    /// All, for a server that is reached without TLS.
    Any,
}

/// A session that was just opened.
pub(crate) struct NewSession {
    /// The value of its cookie.
    pub(crate) cookie: String,
}

/// Who looks at a page, and the token of their forms.
#[derive(Clone)]
pub(crate) struct PageCaller {
    pub(crate) principal: Principal,
    pub(crate) form_token: Option<String>,
    /// How their cookie is to be set again, so that it lasts as long as the session; `None` where nobody signs in.
    pub(crate) renewal: Option<CookieTransport>,
}

impl PageSessions {
    pub(crate) fn new() -> Self {
        Self {
            open: Mutex::default(),
            local_token: random_text().ok(),
        }
    }

    /// Opens a session for somebody who showed a key.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub(crate) fn open(
        &self,
        principal: Principal,
        transport: CookieTransport,
    ) -> std::io::Result<NewSession> {
        let (cookie, form_token) = (random_text()?, random_text()?);
        let now = Instant::now();
        let session = Session {
            principal,
            form_token,
            transport,
            opened: now,
            last_used: now,
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, session| !session.is_over(now));
        if open.len() >= MAX_SESSIONS {
            let oldest = open.iter().min_by_key(|(_, session)| session.last_used);
            if let Some(oldest) = oldest.map(|(cookie, _)| *cookie) {
                open.remove(&oldest);
            }
        }
        open.insert(KeyHash::of(&cookie), session);
        Ok(NewSession { cookie })
    }

    /// Returns whose session a cookie is.
    pub(crate) fn find(&self, cookie: &str) -> Option<PageCaller> {
        let now = Instant::now();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get_mut(&KeyHash::of(cookie))?;
        if session.is_over(now) {
            return None;
        }
        session.last_used = now;
        Some(PageCaller {
            principal: session.principal.clone(),
            form_token: Some(session.form_token.clone()),
            renewal: Some(session.transport),
        })
    }

    /// Ends a session.
    pub(crate) fn close(&self, cookie: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&KeyHash::of(cookie));
    }

    /// Returns the token of forms where nobody signs in.
    pub(crate) fn local_token(&self) -> Option<&str> {
        self.local_token.as_deref()
    }
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.last_used) > SESSION_LENGTH
            || now.duration_since(self.opened) > LONGEST_SESSION
    }
}

impl fmt::Debug for PageSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cookies and tokens are as good as keys.
        f.debug_struct("PageSessions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use contexture::Owner;

    use super::*;
    use crate::access::api_keys::ApiKeys;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[tokio::test(start_paused = true)]
    async fn a_session_lasts_while_it_is_used_and_no_week_longer() {
        let keys = ApiKeys::new(&[], &Owner::local());
        let principal = keys.authorize_without_key().unwrap();
        let sessions = PageSessions::new();
        let open = |transport| sessions.open(principal.clone(), transport).unwrap().cookie;
        let (used, unused) = (open(CookieTransport::HttpsOnly), open(CookieTransport::Any));
        let mut hours = 0;
        while let Some(found) = sessions.find(&used) {
            assert_eq!(found.renewal, Some(CookieTransport::HttpsOnly));
            tokio::time::advance(HOUR * 11).await;
            hours += 11;
        }
        // Seven days have 168 hours; without use it would have ended after the twelfth.
        assert_eq!(hours, 176);
        assert!(sessions.find(&unused).is_none());
    }
}
