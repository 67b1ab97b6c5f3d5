package routing

// Names that cdproto has no constants for: events, what is deprecated, and what would bring in a package for one word.
const (
	eventTargetCreated     = "Target.targetCreated"
	eventTargetInfoChanged = "Target.targetInfoChanged"
	eventTargetDestroyed   = "Target.targetDestroyed"
	eventTargetCrashed     = "Target.targetCrashed"
	eventAttachedToTarget  = "Target.attachedToTarget"
	eventDetached          = "Target.detachedFromTarget"
	eventReceivedMessage   = "Target.receivedMessageFromTarget"
	eventInspectorCrashed  = "Inspector.targetCrashed"
	eventInspectorReloaded = "Inspector.targetReloadedAfterCrash"

	eventRequestedNavigation = "Page.frameRequestedNavigation"
	eventStartedNavigating   = "Page.frameStartedNavigating"
	eventFrameNavigated      = "Page.frameNavigated"
	eventFrameStopped        = "Page.frameStoppedLoading"
	eventDialogOpening       = "Page.javascriptDialogOpening"
	eventDialogClosed        = "Page.javascriptDialogClosed"

	eventDownloadBegins     = "Browser.downloadWillBegin"
	eventDownloadMoves      = "Browser.downloadProgress"
	eventPageDownloadBegins = "Page.downloadWillBegin"
	eventPageDownloadMoves  = "Page.downloadProgress"

	commandNavigate           = "Page.navigate"
	commandSendMessage        = "Target.sendMessageToTarget"
	commandFetchEnable        = "Fetch.enable"
	commandFetchDisable       = "Fetch.disable"
	commandPageDownload       = "Page.setDownloadBehavior"
	commandGrantPermissions   = "Browser.grantPermissions"
	commandDeleteCookies      = "Storage.deleteCookies"
	commandStorageKeyForFrame = "Storage.getStorageKeyForFrame"
	commandPrivacySandbox     = "Browser.addPrivacySandboxEnrollmentOverride"
	commandAddScreen          = "Emulation.addScreen"
	commandUpdateScreen       = "Emulation.updateScreen"
	commandRemoveScreen       = "Emulation.removeScreen"
	commandSetPrimaryScreen   = "Emulation.setPrimaryScreen"
	commandDisplayFeatures    = "Emulation.setDisplayFeaturesOverride"
	commandIORead             = "IO.read"
	commandIOClose            = "IO.close"
)
