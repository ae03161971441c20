//! Who makes a request. It is found once, when the request arrives, and handed to every use case.

use std::time::Instant;

use arbiter_proto::ids::TokenId;

use super::{Result, Service, ServiceError};
use crate::access::token_throttle::Origin;
use crate::access::{self, Role, Secret, Token};
use crate::db::{audit_log, bots};

/// The holder of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The token.
    pub(crate) id: TokenId,
    /// What it allows.
    pub(crate) role: Role,
}

impl Principal {
    /// Whether it is an organiser.
    pub(crate) fn organises(&self) -> bool {
        self.role.covers(Role::Organiser)
    }

    /// Whether it manages a bot: organisers manage all.
    pub(crate) fn owns(&self, bot: &bots::Bot) -> bool {
        self.organises() || bot.owner == Some(self.id.0)
    }
}

/// Who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// It shows no token.
    #[default]
    Anonymous,
    /// It shows a token that is not valid: why. It may see what everybody may.
    Rejected(ServiceError),
    /// It shows a valid token.
    Known(Principal),
}

impl Caller {
    /// The holder of a token that allows what `role` is needed for.
    ///
    /// # Errors
    /// If there is no token, or it is not valid, or its role is not enough.
    pub(crate) fn require(&self, role: Role) -> Result<&Principal> {
        match self {
            Self::Known(principal) if principal.role.covers(role) => Ok(principal),
            Self::Known(Principal { role: own, .. }) => Err(ServiceError::permission_denied(
                format!("this needs a token of role {role}, not {own}"),
            )),
            Self::Rejected(error) => Err(error.clone()),
            Self::Anonymous => {
                Err(ServiceError::unauthenticated(format!("this needs a token of role {role}")))
            }
        }
    }

    /// The holder of the token, if it is valid.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        match self {
            Self::Known(principal) => Some(principal),
            Self::Anonymous | Self::Rejected(_) => None,
        }
    }

    /// Whether it is an organiser.
    pub(crate) fn organises(&self) -> bool {
        self.principal().is_some_and(Principal::organises)
    }

    /// Whether it is the owner of this number.
    pub(crate) fn is(&self, owner: Option<i32>) -> bool {
        owner.is_some() && self.principal().map(|principal| principal.id.0) == owner
    }

    /// Whether it may know what happened to a bot of this owner.
    pub(crate) fn minds(&self, owner: Option<i32>) -> bool {
        self.organises() || self.is(owner)
    }
}

impl Service {
    /// Who shows this secret, if one is shown.
    pub(crate) async fn caller(&self, secret: Option<&Secret>, origin: &Origin) -> Result<Caller> {
        let Some(secret) = secret else { return Ok(Caller::Anonymous) };
        if let Err(error) = self.admits(secret, origin) {
            return Ok(Caller::Rejected(error));
        }
        Ok(match self.find_token(secret, origin).await? {
            Some(token) => Caller::Known(Principal { id: token.id, role: token.role }),
            None => Caller::Rejected(ServiceError::unauthenticated(
                "the token is not known here, or was revoked, or has expired",
            )),
        })
    }

    /// Whether a secret is that of a valid token. The login of an organiser is noted in the audit
    /// log.
    ///
    /// # Errors
    /// If this origin, or all origins together, showed too many invalid tokens.
    pub(crate) async fn log_in(&self, secret: &Secret, origin: &Origin) -> Result<bool> {
        self.admits(secret, origin)?;
        let found = self.find_token(secret, origin).await?;
        if let Some(token) = found.as_ref().filter(|token| token.role.covers(Role::Organiser)) {
            let (id, now) = (token.id, self.now());
            let subject = format!("{id} {} {}", token.role, token.name);
            audit_log::write(&self.pool, Some(id), "token login", &subject, None, now).await?;
        }
        Ok(found.is_some())
    }

    /// Refuses an origin that has shown too many invalid tokens.
    fn admits(&self, secret: &Secret, origin: &Origin) -> Result<()> {
        self.guard.admits(secret, origin, Instant::now()).map_err(|wait| {
            let seconds = wait.as_secs() + 1;
            let why = format!("too many tokens from there are not known here; wait {seconds} s");
            ServiceError::resource_exhausted(why).with_retry_after(wait)
        })
    }

    /// The valid token of this secret.
    async fn find_token(&self, secret: &Secret, origin: &Origin) -> Result<Option<Token>> {
        // Callers are found by the connections of the queue: pages that hold up readers keep no
        // worker out.
        let found = access::find(self.queue.pool(), secret, self.now()).await?;
        match found {
            Some(_) => self.guard.right(secret, Instant::now()),
            None => self.guard.wrong(secret, origin, Instant::now()),
        }
        Ok(found)
    }
}
