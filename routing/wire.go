package routing

//go:generate go run github.com/mailru/easyjson/easyjson -all wire.go

// What is read of Chrome's own messages. Each type holds the members that
// routing decides by; the texts themselves are passed on as they came.

// targetInfo is Target.TargetInfo.
type targetInfo struct {
	TargetID         string     `json:"targetId"`
	Type             string     `json:"type"`
	Subtype          string     `json:"subtype"`
	Title            string     `json:"title"`
	URL              string     `json:"url"`
	OpenerID         string     `json:"openerId"`
	ParentID         string     `json:"parentId"`
	BrowserContextID string     `json:"browserContextId"`
	EmbedderData     *tabOfPage `json:"embedderData"`
}

// tabOfPage is there on the tab target of a page, and missing on the tab
// targets that wrap the browser's own interface.
type tabOfPage struct{}

// ids are the ids that a result or an event names.
type ids struct {
	TargetID         string `json:"targetId"`
	SessionID        string `json:"sessionId"`
	BrowserContextID string `json:"browserContextId"`
}

// contexts is the result of Target.getBrowserContexts.
type contexts struct {
	BrowserContextIDs       []string `json:"browserContextIds"`
	DefaultBrowserContextID string   `json:"defaultBrowserContextId"`
}

// downloadEvent is Browser.downloadWillBegin and downloadProgress, and their
// twins of the Page domain.
type downloadEvent struct {
	FrameID           string `json:"frameId"`
	GUID              string `json:"guid"`
	URL               string `json:"url"`
	SuggestedFilename string `json:"suggestedFilename"`
	State             string `json:"state"`
	FilePath          string `json:"filePath"`
}

// Version is the result of Browser.getVersion.
type Version struct {
	ProtocolVersion string `json:"protocolVersion"`
	Product         string `json:"product"`
	Revision        string `json:"revision"`
	UserAgent       string `json:"userAgent"`
	JSVersion       string `json:"jsVersion"`
}

// cdpError is the error of a reply.
type cdpError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}
