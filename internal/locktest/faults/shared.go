package faults

// forOneHolder are the cases in which a second holder has to wait. Readers share a key, and do
// without.
var forOneHolder = []string{
	"F10_ManyProcesses", "F10_TenThousandWaiters", "F11_SubscriberCut", "F12_KeyDeletedWithoutMessage",
	"F15_LostBySilenceIsUndone", "F15_PartitionAfterReset", "F15_PartitionByProxy", "F16_ResetBeforeExecution",
	"F18_RepliesLostOneWay", "F19_PoolExhausted", "F33_WrongType", "F35_AllAwayRefused", "F35_AllAwayReset",
	"F35_AllAwaySilent", "F35_ServedAtOnce", "F38_WaitAnsweredByAProxy", "F4_CancelledAtEveryStep",
	"F4_GrantForNobodyIsNotRenewed", "F5_UnlockOfWhatIsNotHeld", "F6_ReplyLostAfterExecution",
}
