package routing

// Names that cdproto has no constants for: events, and what is deprecated.
const (
	eventTargetCreated     = "Target.targetCreated"
	eventTargetInfoChanged = "Target.targetInfoChanged"
	eventTargetDestroyed   = "Target.targetDestroyed"
	eventTargetCrashed     = "Target.targetCrashed"
	eventAttachedToTarget  = "Target.attachedToTarget"
	eventDetached          = "Target.detachedFromTarget"
	eventReceivedMessage   = "Target.receivedMessageFromTarget"
	eventInspectorCrashed  = "Inspector.targetCrashed"

	eventRequestedNavigation = "Page.frameRequestedNavigation"
	eventDialogOpening       = "Page.javascriptDialogOpening"
	eventDialogClosed        = "Page.javascriptDialogClosed"

	commandSendMessage  = "Target.sendMessageToTarget"
	commandFetchEnable  = "Fetch.enable"
	commandPageDownload = "Page.setDownloadBehavior"
)
