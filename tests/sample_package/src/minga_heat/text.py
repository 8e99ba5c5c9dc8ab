import io

from minga.extend import CaseError, ExportFormat, write_whole


def write(export):
    values = export.values()
    if values.ndim != 2:
        raise CaseError(f"tables have two axes, {export.field} has {values.ndim}", key="--format")
    import numpy as np

    text = io.StringIO()
    np.savetxt(text, values, header=f"{export.field} after step {export.step}")
    write_whole(export.path, text.getvalue())


FORMAT = ExportFormat("numpy.loadtxt, spreadsheets: a table of two axes", write)
