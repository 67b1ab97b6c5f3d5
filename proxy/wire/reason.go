package wire

import (
	"strings"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"cdpmux/routing"
)

// Reason is why a connection ended; [Reason.Info] says what the peer, the log
// and the metrics are told. The zero Reason is none.
type Reason uint8

// The reasons are the rows of the table below.
const (
	ClientLeft Reason = iota + 1
	ProtocolError
	BinaryFrame
	MessageTooBig
	SlowConsumer
	ShuttingDown
	BrowserClose
	TakenOver
	BrowserLost
	StartFailed
	BrowserStopped
	EndedByOperator
	SessionClosed
	TargetClosed
	NoTarget

	ReasonCount // one more than the last
)

// ReasonInfo is a row of the table.
type ReasonInfo struct {
	Code  int           // of the close frame; 0: TCP is dropped without one, as Chrome does there or because nobody listens any more
	Text  string        // of the close frame and the log
	Level zerolog.Level // of the line in the log
	Label string        // of the metrics
}

var reasons = [...]ReasonInfo{
	ClientLeft:      {0, "client left", zerolog.InfoLevel, "client_left"},
	ProtocolError:   {websocket.CloseProtocolError, "not a valid WebSocket frame", zerolog.WarnLevel, "protocol_error"},
	BinaryFrame:     {websocket.CloseUnsupportedData, "text frames only", zerolog.WarnLevel, "binary_frame"},
	MessageTooBig:   {websocket.CloseMessageTooBig, "message of 100 MiB or more", zerolog.WarnLevel, "message_too_big"},
	SlowConsumer:    {4008, "slow consumer", zerolog.WarnLevel, "slow_consumer"},
	ShuttingDown:    {websocket.CloseGoingAway, "proxy is shutting down", zerolog.InfoLevel, "shutdown"},
	BrowserClose:    {websocket.CloseNormalClosure, "Browser.close", zerolog.InfoLevel, "browser_close"},
	TakenOver:       {4409, "client id claimed by a newer connection", zerolog.ErrorLevel, "taken_over"},
	BrowserLost:     {websocket.CloseServiceRestart, "browser connection lost; connect again", zerolog.WarnLevel, "browser_lost"},
	StartFailed:     {websocket.CloseTryAgainLater, "browser could not be started", zerolog.ErrorLevel, "start_failed"},
	BrowserStopped:  {websocket.CloseServiceRestart, "browser stopped; connect again to start it", zerolog.InfoLevel, "browser_stopped"},
	EndedByOperator: {websocket.CloseNormalClosure, "ended by the operator", zerolog.InfoLevel, "ended_by_operator"},
	SessionClosed:   {websocket.CloseNormalClosure, "its session was closed", zerolog.InfoLevel, "session_closed"},
	TargetClosed:    {0, "target closed", zerolog.InfoLevel, "target_closed"},
	NoTarget:        {0, "no such target", zerolog.InfoLevel, "no_target"},
}

// Info is the reason's row of the table.
func (r Reason) Info() ReasonInfo { return reasons[r] }

// closeFrame is the payload of the close frame, nil when there is to be none.
func (e *Ending) closeFrame() []byte {
	info := e.Reason.Info()
	if info.Code == 0 {
		return nil
	}
	text := info.Text
	if e.Text != "" {
		text = e.Text
	}
	if len(text) > maxCloseText {
		text = strings.ToValidUTF8(text[:maxCloseText], "")
	}
	return websocket.FormatCloseMessage(info.Code, text)
}

// maxCloseText is what a close frame has room for.
const maxCloseText = 123

// routed translates the Router's reasons.
var routed = map[routing.Reason]Reason{
	routing.ReasonBrowserClose:   BrowserClose,
	routing.ReasonTakenOver:      TakenOver,
	routing.ReasonBrowserLost:    BrowserLost,
	routing.ReasonStartFailed:    StartFailed,
	routing.ReasonShutdown:       ShuttingDown,
	routing.ReasonBrowserStopped: BrowserStopped,
	routing.ReasonOperator:       EndedByOperator,
	routing.ReasonSessionClosed:  SessionClosed,
	routing.ReasonTargetClosed:   TargetClosed,
	routing.ReasonNoTarget:       NoTarget,
}

// ReasonOf translates one of the Router's reasons.
func ReasonOf(r routing.Reason) Reason { return routed[r] }
