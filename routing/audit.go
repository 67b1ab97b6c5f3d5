package routing

// Decision is what became of one command, for the audit. It has nothing of the
// command's params.
type Decision struct {
	Client string // "" is the HTTP owner
	Method string // as sent, at most maxAudited bytes of it; or "PUT /json/new" and the like
	Target string // id of the target that its session speaks to; "" at a root
	Kind   string // allowed, refused or emulated
	Why    string // of a refusal, a word: see deny
}

// maxAudited bounds what is kept of a method, which clients write.
const maxAudited = 128

// deny refuses a command with an error of ours, and notes why:
//
//	policy   the method is refused to all
//	rule     … by the operator's policy file
//	scheme   it would load an address that is not open
//	upload   a file is not below an upload root
//	cap      the client has all the tabs that it may have
//	unknown  no method of a root
//	foreign  it names a target, session or context that is not the client's
//	session  … and speaks to one
func (r *Router) deny(s *session, env *Envelope, why, text string) {
	r.denied = why
	r.reply(s, env.ID, errorBody(codeServer, text))
}

// record tells what became of a command. Decisions of one kind follow the
// policy's row; a refusal that some handler has made counts for more.
func (r *Router) record(client, method, target string, v verdict) {
	d := &Decision{Client: client, Method: method, Target: target, Kind: "allowed", Why: r.denied}
	switch {
	case r.denied != "":
		d.Kind = "refused"
	case v == emulate:
		d.Kind = "emulated"
	}
	r.denied = ""
	r.out = append(r.out, Action{Kind: Audited, Decision: d})
}

// audited is what is kept of a method's name.
func audited(method []byte) string { return string(method[:min(len(method), maxAudited)]) }
