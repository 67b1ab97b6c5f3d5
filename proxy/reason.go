package proxy

import (
	"strings"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"cdpmux/routing"
)

// reason is why a connection ended. The table below says what the peer, the
// log and the metrics are told.
type reason uint8

const (
	clientLeft reason = iota + 1
	protocolError
	binaryFrame
	messageTooBig
	slowConsumer
	shuttingDown
	browserClose
	takenOver
	browserLost
	startFailed
	browserStopped
	endedByOperator
	sessionClosed
	targetClosed
	noTarget

	reasonCount
)

// reasonInfo is a row of the table. Code 0 means that TCP is dropped without a
// close frame, as Chrome does there or because nobody listens any more.
type reasonInfo struct {
	code  int
	text  string
	level zerolog.Level
	label string
}

var reasons = [...]reasonInfo{
	clientLeft:      {0, "client left", zerolog.InfoLevel, "client_left"},
	protocolError:   {websocket.CloseProtocolError, "not a valid WebSocket frame", zerolog.WarnLevel, "protocol_error"},
	binaryFrame:     {websocket.CloseUnsupportedData, "text frames only", zerolog.WarnLevel, "binary_frame"},
	messageTooBig:   {websocket.CloseMessageTooBig, "message of 100 MiB or more", zerolog.WarnLevel, "message_too_big"},
	slowConsumer:    {4008, "slow consumer", zerolog.WarnLevel, "slow_consumer"},
	shuttingDown:    {websocket.CloseGoingAway, "proxy is shutting down", zerolog.InfoLevel, "shutdown"},
	browserClose:    {websocket.CloseNormalClosure, "Browser.close", zerolog.InfoLevel, "browser_close"},
	takenOver:       {4409, "client id claimed by a newer connection", zerolog.ErrorLevel, "taken_over"},
	browserLost:     {websocket.CloseServiceRestart, "browser connection lost; connect again", zerolog.WarnLevel, "browser_lost"},
	startFailed:     {websocket.CloseTryAgainLater, "browser could not be started", zerolog.ErrorLevel, "start_failed"},
	browserStopped:  {websocket.CloseServiceRestart, "browser stopped; connect again to start it", zerolog.InfoLevel, "browser_stopped"},
	endedByOperator: {websocket.CloseNormalClosure, "ended by the operator", zerolog.InfoLevel, "ended_by_operator"},
	sessionClosed:   {websocket.CloseNormalClosure, "its session was closed", zerolog.InfoLevel, "session_closed"},
	targetClosed:    {0, "target closed", zerolog.InfoLevel, "target_closed"},
	noTarget:        {0, "no such target", zerolog.InfoLevel, "no_target"},
}

func (r reason) info() reasonInfo { return reasons[r] }

// closeFrame is the payload of the close frame, nil when there is to be none.
func (e *ending) closeFrame() []byte {
	info := e.reason.info()
	if info.code == 0 {
		return nil
	}
	text := info.text
	if e.text != "" {
		text = e.text
	}
	if len(text) > maxCloseText {
		text = strings.ToValidUTF8(text[:maxCloseText], "")
	}
	return websocket.FormatCloseMessage(info.code, text)
}

// maxCloseText is what a close frame has room for.
const maxCloseText = 123

// routed translates the Router's reasons.
var routed = map[routing.Reason]reason{
	routing.ReasonBrowserClose:   browserClose,
	routing.ReasonTakenOver:      takenOver,
	routing.ReasonBrowserLost:    browserLost,
	routing.ReasonStartFailed:    startFailed,
	routing.ReasonShutdown:       shuttingDown,
	routing.ReasonBrowserStopped: browserStopped,
	routing.ReasonOperator:       endedByOperator,
	routing.ReasonSessionClosed:  sessionClosed,
	routing.ReasonTargetClosed:   targetClosed,
	routing.ReasonNoTarget:       noTarget,
}
