package contract

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// needServers are the cases that a kind without servers leaves out, beside trustCases and replyCases. A case that is not
// here runs with that kind.
var needServers = []string{
	// They disturb the way to Redis.
	"Reentry_CancelledCountsForNothing", "Unlock_UnknownWithTheContext", "Unlock_GoesOnUntilTheDeadline",
	"Wait_QueueFullAfterTheFirstAttempt", "Wait_InOrderBehindTheFirstAttempt", "Wait_RidesOutAnOutage", "Cancel_LeavesTheNextItsOwnTerms",
	"Do_IsDoneWithoutAnAnswerToTheRelease", "Do_IsDoneThoughTheReleaseOutlastsTheLease", "Close_WithACallUnderWay",
	"Close_IsBoundedWhileRedisHangs", "Close_IsBoundedDuringAnUndo", "Close_RepeatsWhatFails", "Close_NamesKeys",
	"Handover_NotAfterANestedCallInDoubt", "Handover_NotAfterANestedCallThatWasInDoubt", "ForceUnlock_Unanswered",
	"Logger_IsSilentByDefault", "Secrets_AreInNoErrorAndNoLog", "G4_SubscribesThenTriesAgain", "G4_LooksAgainAfterAReconnect",
	"G9_AWaiterThatCannotSubscribe", "Label_OfTheFirstAttempt",
	// They change what Redis has.
	"Reentry_AnswerOfNotOursEndsTheLease", "Unlock_FindsTheLossItself", "Wait_DoesNotCureARefusal", "Inspect_OfAKeyThatIsNotOurs",
	"Label_IsShown", "Locks_LeavesOutWhatIsNoLock", "Locks_ManyThatComeAndGo", "ForceUnlock_LeavesAForeignKeyAlone", "G4_CrashedHolderFreesTheKey", "G6_OnlyTheOwner",
	"G9_AKeyOfAWrongTypeInABatch", "G10_NumbersGrow",
	// They look at calls, connections and keys.
	"Unlock_IsOneRoundTrip", "Wait_TryLockAnswersLocallyWhereItCan", "Wait_CostsNoCommand", "Close_ReleasesManyInFewCalls",
	"G4_ListenersThatDoNothingDelayNobody", "G7_NothingIsLeftOver",
	// They are about hand-over and a client, which a kind without servers has not.
	"Handover_IsInMemory", "Handover_TakesFencesFromTheReserve", "Handover_Off", "Handover_LikeToLike",
	"Handover_OldEntriesDoNotTouchTheNextLease", "Handover_LossEndsThePresentLease", "Refused_NoClient",
}

// needOwnRedis are those of the others that take the way to Redis away.
var needOwnRedis = []string{
	"Cancel_InAnOutageTellsWhatIsKnown", "Inspect_TellsWhoHoldsAKey", "Wait_MaxOutage", "Wait_MaxOutageIsOneLeaseByDefault", "Wait_NoOutage", "Locks_TellsOfAnOutage",
}

// withoutServers leaves those of needServers out, and on a shared Redis those of needOwnRedis.
// All of them have to be there.
func withoutServers(t *testing.T, cases []testCase, shared bool) []testCase {
	t.Helper()
	all, out := len(cases), needServers
	if shared {
		out = slices.Concat(out, needOwnRedis)
	}
	cases = slices.DeleteFunc(cases, func(c testCase) bool { return slices.Contains(out, c.name) })
	require.Len(t, out, all-len(cases), "one of them is no case any more, or is there twice")
	return cases
}
