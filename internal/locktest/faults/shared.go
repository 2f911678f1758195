package faults

// forOneHolder are the cases in which a second holder has to wait. Readers share a key, and do
// without.
var forOneHolder = []string{
	"F10_ManyProcesses", "F10_TenThousandWaiters", "F11_SubscriberCut", "F12_ChannelForbidden",
	"F12_FloodOfForeignMessages", "F12_ForeignMessagesGrantNothing", "F12_KeyDeletedWithoutMessage",
	"F14_SlowSubscriberDropped", "F15_LostBySilenceIsUndone", "F15_PartitionAfterReset",
	"F15_PartitionByProxy", "F16_ResetBeforeExecution", "F18_RepliesLostOneWay", "F19_PoolExhausted",
	"F25_ReplicasConfirm", "F25_ReplicasMayNotBeAsked", "F32_NoRight", "F32_UnknownPasswordIsRepeated",
	"F33_WrongType", "F34_ClockJumpsAhead", "F34_ClockJumpsBack", "F34_ClockRuns×0.5", "F34_ClockRuns×1.01",
	"F34_ClockRuns×2", "F35_AllAwayRefused", "F35_AllAwayReset", "F35_AllAwaySilent", "F35_ServedAtOnce",
	"F36_CallsFollowTheName", "F36_ClientClosedFirst", "F36_DeafSubscription", "F36_ProxySwapsItsServer",
	"F38_WaitAnsweredByAProxy", "F39_KeyForbiddenForAWhile", "F39_NoScriptsForAWhile",
	"F39_PasswordComesLate", "F39_PasswordWantedForAWhile", "F39_ProviderFails",
	"F40_ReplicasBesideOurSubscription", "F4_CancelledAtEveryStep", "F4_GrantForNobodyIsNotRenewed",
	"F5_UnlockOfWhatIsNotHeld", "F6_ReplyLostAfterExecution",
}
