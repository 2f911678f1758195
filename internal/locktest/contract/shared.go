package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// forOneHolder are the cases that keep a key from a second holder, or hand it on to a waiter.
// Readers share a key, so they do without.
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
	"Label_OfTheFirstAttempt", "Locks_OfAPrefix", "Observe_Blocked", "Observe_Close", "Observe_HandoverAndGrant",
	"Observe_LocksItself", "Observe_Failed", "Observe_WokenWaiter", "Reentry_CountsAndAnyOrderOfUnlock",
	"Reentry_OnlyOnTheSameLockerAndKey", "Secrets_AreInNoErrorAndNoLog", "Terms_FixedLeaseIsNeverRenewedAndGoneAfterIt",
	"Terms_MaxHoldOfALocker", "Terms_OfAWaiter", "Unlock_FindsTheLossItself", "Unlock_SecondTimeIsErrReleased",
	"Wait_CostsNoCommand", "Wait_DoesNotCureARefusal", "Wait_InOrderWithinALocker", "Wait_OfZeroIsTryLock", "Wait_TooManyWaiters",
	"Wait_TooManyWaitersAfterTheFirstAttempt", "Wait_TooManyWaitersForTheFirstWaiter", "Wait_TryLockAnswersLocallyWhereItCan",
	"Wait_TryLockForEndsWithErrNotAcquired",
}

// CountsReaders checks what Inspect says of readers: the plain ones of a locker count once, and each
// other one by itself. readers are the other half of writers, and others are of another locker.
func CountsReaders(t *testing.T, writers locktest.Locker, readers, others holdfast.Locker) {
	ctx := t.Context()
	var leases []*holdfast.Lease
	w := locktest.Lock(t, writers, ctx, "k")
	for _, reader := range []struct {
		what   string
		of     holdfast.Locker
		ctx    context.Context
		option []holdfast.LockOption
		count  int
	}{
		{"beside its writer", readers, w.Bind(ctx), nil, 1},
		{"plain", readers, ctx, nil, 2},
		{"plain, the second", readers, ctx, nil, 2},
		{"of another locker", others, ctx, nil, 3},
		{"with a label", readers, ctx, []holdfast.LockOption{holdfast.Label("mine")}, 4},
		{"with a lease", readers, ctx, []holdfast.LockOption{holdfast.FixedLease(time.Hour)}, 5},
		{"with a cap", readers, ctx, []holdfast.LockOption{holdfast.MaxHold(time.Hour)}, 6},
		{"plain, the third", readers, ctx, nil, 6},
		{"of another locker, with a cap", others, ctx, []holdfast.LockOption{holdfast.MaxHold(time.Hour)}, 7},
	} {
		leases = append(leases, locktest.Lock(t, reader.of, reader.ctx, "k", reader.option...))
		s, err := writers.Inspect(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, reader.count, s.Readers, reader.what)
		if w.Err() == nil {
			require.NoError(t, w.Unlock(ctx))
		}
	}
	for _, lease := range leases {
		require.NoError(t, lease.Unlock(ctx))
	}
}
