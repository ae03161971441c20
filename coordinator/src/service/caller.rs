//! The sender of a request. It is identified once, when the request arrives, and every use case
//! takes it.

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
    /// The role of the token.
    pub(crate) role: Role,
    /// The name of its holder or its purpose.
    pub(crate) name: String,
    /// With which the names of its bots begin, if it is a player's. Tokens from before there were
    /// handles have none until they need one.
    pub(crate) handle: Option<String>,
}

impl Principal {
    /// Whether it is an organiser.
    pub(crate) fn is_organiser(&self) -> bool {
        self.role.covers(Role::Organiser)
    }

    /// Whether it may manage a bot: organisers may manage all.
    pub(crate) fn owns(&self, bot: &bots::Bot) -> bool {
        self.is_organiser() || bot.owner == Some(self.id.0)
    }
}

/// The sender of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// It sent no token.
    #[default]
    Anonymous,
    /// It sent an invalid token, for this reason. It may see public data only.
    Rejected(ServiceError),
    /// It sent a valid token.
    Known(Principal),
}

impl Caller {
    /// Returns the holder of the token if its role covers `role`.
    pub(crate) fn require(&self, role: Role) -> Result<&Principal> {
        match self {
            Self::Known(principal) if principal.role.covers(role) => Ok(principal),
            Self::Known(Principal { role: caller_role, .. }) => {
                Err(ServiceError::permission_denied(format!(
                    "this needs a token of role {role}, not {caller_role}"
                )))
            }
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
    pub(crate) fn is_organiser(&self) -> bool {
        self.principal().is_some_and(Principal::is_organiser)
    }

    /// Whether its token is the owner with this number.
    pub(crate) fn is_owner(&self, owner: Option<i32>) -> bool {
        owner.is_some() && self.principal().map(|principal| principal.id.0) == owner
    }

    /// Whether it may read private details of this owner's bots.
    pub(crate) fn may_inspect(&self, owner: Option<i32>) -> bool {
        self.is_organiser() || self.is_owner(owner)
    }
}

impl Service {
    /// Identifies the sender by the secret of its token, if it sent one.
    pub(crate) async fn caller(&self, secret: Option<&Secret>, origin: &Origin) -> Result<Caller> {
        let Some(secret) = secret else { return Ok(Caller::Anonymous) };
        if let Err(error) = self.check_throttle(secret, origin) {
            return Ok(Caller::Rejected(error));
        }
        Ok(match self.find_token(secret, origin).await? {
            Some(Token { id, role, name, handle, .. }) => {
                Caller::Known(Principal { id, role, name, handle })
            }
            None => Caller::Rejected(ServiceError::unauthenticated(
                "the token is unknown, revoked or expired",
            )),
        })
    }

    /// Whether this is the secret of a valid token. The audit log records logins of organisers.
    ///
    /// # Errors
    /// If this origin, or all origins together, sent too many invalid tokens.
    pub(crate) async fn log_in(&self, secret: &Secret, origin: &Origin) -> Result<bool> {
        self.check_throttle(secret, origin)?;
        let token = self.find_token(secret, origin).await?;
        if let Some(token) = token.as_ref().filter(|token| token.role.covers(Role::Organiser)) {
            let id = token.id;
            let now = self.now();
            let subject = format!("{id} {} {}", token.role, token.name);
            audit_log::write(&self.pool, Some(id), "token login", &subject, None, now).await?;
        }
        Ok(token.is_some())
    }

    /// Refuses an origin that sent too many invalid tokens.
    fn check_throttle(&self, secret: &Secret, origin: &Origin) -> Result<()> {
        self.token_throttle.check(secret, origin, Instant::now()).map_err(|wait| {
            let seconds = wait.as_secs() + 1;
            let error = format!("too many invalid tokens from this address; wait {seconds} s");
            ServiceError::resource_exhausted(error).with_retry_after(wait)
        })
    }

    /// The valid token of this secret.
    async fn find_token(&self, secret: &Secret, origin: &Origin) -> Result<Option<Token>> {
        // This uses the connections of the queue, so that slow readers do not delay workers.
        let token = access::find(self.queue.pool(), secret, self.now()).await?;
        match token {
            Some(_) => self.token_throttle.record_valid(secret, Instant::now()),
            None => self.token_throttle.record_invalid(secret, origin, Instant::now()),
        }
        Ok(token)
    }
}
