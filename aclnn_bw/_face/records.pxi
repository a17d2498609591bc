"""The records of the operators, as Python sees them."""

cdef tuple TWO_PHASE_NAMES = tuple([argument_names[0][i].decode() for i in range(ARGUMENTS)])
cdef tuple ONE_CALL_NAMES = tuple([argument_names[1][i].decode() for i in range(ARGUMENTS)])
cdef tuple KINDS = (None, "read", "shape", "written", "ints", "bool", "int", "int", "real", "layout")


cdef list texts_of(const Record* record):
    """What a plan chooses from: "NAME: what it does"."""
    cdef list texts = []
    while record.algorithms[len(texts)] != NULL:
        texts.append(record.algorithms[len(texts)].decode())
    return texts


cdef dict parameter_of(const Parameter* parameter):
    return {
        "kind": KINDS[parameter.kind],
        "name": TWO_PHASE_NAMES[parameter.argument],
        "one_call": ONE_CALL_NAMES[parameter.argument],
        "is_mask": parameter.flags & IS_MASK != 0,
        "is_indices": parameter.flags & IS_INDICES != 0,
        "own_dtype": parameter.flags & OWN_DTYPE != 0,
        "nullable": parameter.flags & NULLABLE != 0,
        "empty": parameter.flags & EMPTY != 0,
        "optional": parameter.flags & OPTIONAL != 0,
        "two_phase_only": parameter.flags & TWO_PHASE_ONLY != 0,
        "sampled": parameter.flags & SAMPLED != 0,
        "known": parameter.flags & KNOWN != 0,
        "repeats": parameter.flags >> COUNT_SHIFT,
    }


def records():
    """Return what operators.def says, for aclnn_bw._records."""
    cdef const Record* record
    cdef int op, i
    cdef list found = []
    for op in range(OPERATORS):
        record = operator_of(op)
        parameters = []
        i = 0
        while record.parameters[i].kind != END:
            parameters.append(parameter_of(&record.parameters[i]))
            i += 1
        found.append({
            "name": record.name.decode(),
            "one_call": record.one_call.decode(),
            "parameters": parameters,
            "dtypes": [[dtype for dtype in range(DT_BF16 + 1) if takes_dtype(op, product, dtype)]
                       for product in range(HOST + 1)],
            "algorithms": dict([text.split(": ", 1) for text in texts_of(record)]),
        })
    return found


__all__ = [
    "aclCreateIntArray", "aclCreateTensor", "aclDestroyAclOpExecutor", "aclDestroyIntArray", "aclDestroyTensor",
    "aclGetRecentErrMsg", "aclIntArray", "aclOpExecutor", "aclSetAclOpExecutorRepeatable", "aclSetInputTensorAddr",
    "aclSetOutputTensorAddr", "aclSetTensorAddr", "aclTensor",
]
for _record in records():
    __all__ += [f"aclnn{_record['name']}", f"aclnn{_record['name']}GetWorkspaceSize", _record["one_call"]]
