package contract

// forOneHolder are the cases that keep a key from a second holder, or hand it on to a waiter.
// Readers, who share a key, do without.
var forOneHolder = []string{
	"Cancel_JoinsTheContextsErrorAndCause", "Cancel_LeavesTheNextItsOwnTerms", "Cancel_OfOneWaiterLeavesTheOthers",
	"Close_IsBoundedWhileRedisHangs", "Close_ReleasesAndEndsAll", "Close_RepeatsWhatFails", "Do_DoesNotRunWithoutTheLock",
	"Do_WaitsAtMost", "Errors_NameTheKey", "F8_AnyBytesAreAKey", "ForceUnlock_OthersAreToldAtTheirRenewal",
	"ForceUnlock_WakesWaiters", "G1_OneHolderAtATime", "G10_NumbersGrow", "G2_G3_RequestsArriveLate", "G2_ServerHangs",
	"G4_AGrantToOneWhoLeavesGoesOn", "G4_LooksAgainAfterAReconnect", "G4_SubscribesThenTriesAgain",
	"G5_AcquireTwiceCountsOnce", "G5_FencedAcquireTwiceCountsOnce", "G7_NothingIsLeftOver", "G9_AWaiterThatCannotSubscribe",
	"Handover_IsInMemory", "Handover_LikeToLike", "Handover_LossEndsThePresentLease", "Handover_NotAfterANestedCallInDoubt",
	"Handover_NotAfterANestedCallThatWasInDoubt", "Handover_NotBeyondTheTenure", "Handover_Off",
	"Handover_OldEntriesDoNotTouchTheNextLease", "Handover_TakesFencesFromTheReserve", "Label_IsShown", "Label_OfACall",
	"Label_OfTheFirstAttempt", "Locks_OfAPrefix", "Observe_Blocked", "Observe_Close", "Observe_HandOverAndGrant",
	"Observe_LocksItself", "Observe_Failed", "Observe_WokenWaiter", "Reentry_CountsAndAnyOrderOfUnlock",
	"Reentry_OnlyOnTheSameLockerAndKey", "Secrets_AreInNoErrorAndNoLog", "Terms_FixedLeaseIsNeverRenewedAndGoneAfterIt",
	"Terms_MaxHoldOfALocker", "Terms_OfAWaiter", "Unlock_FindsTheLossItself", "Unlock_SecondTimeIsErrReleased",
	"Wait_CostsNoCommand", "Wait_DoesNotCureARefusal", "Wait_InOrderWithinALocker", "Wait_OfZeroIsTryLock", "Wait_TooManyWaiters",
	"Wait_TooManyWaitersAfterTheFirstAttempt", "Wait_TooManyWaitersForTheFirstWaiter", "Wait_TryLockAnswersLocallyWhereItCan",
	"Wait_TryLockForEndsWithErrNotAcquired",
}
